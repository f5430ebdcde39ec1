! A FORMAT for output before and after a communication.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, big(400) = 1, s(1) = 0
  character(20) :: text
contains
  subroutine exchange(a)
    real(8) :: a(0:n + 1)
    write (text, 100) a(1)
100 format(f20.8)
    read (text, 100) s
    call MPI_Sendrecv(s, 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    write (text, 100) a(n + 1)
    read (text, 100) a(n + 1)
  end subroutine exchange
end module grid

program format_in_halves
  use grid
  implicit none
  integer :: i, step

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = [(i + 100 * rank, i=0, n + 1)]
  do step = 1, 3
    call exchange(u)
    big = big + step
    do i = 1, n
      r(i) = r(i) + 0.5d0 * u(i + 1)
    end do
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,3z17.16)') rank, sum(u), sum(r), sum(big)
  call MPI_Finalize(ierr)
end program format_in_halves
