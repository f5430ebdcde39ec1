! The variable of DO CONCURRENT is the loop's own: outside the loop, the name keeps its value.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
contains
  subroutine exchange()
    integer :: i

    i = 2
    call MPI_Sendrecv(u(i - 1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    do concurrent (i = 1:2)
      w(i) = u(n + 1) + i
    end do
    w(i + 1) = 5d0
  end subroutine exchange
end module grid

program do_concurrent
  use grid
  implicit none
  integer :: i, step

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do i = 0, n + 1
    u(i) = i + 100 * rank
  end do
  do step = 1, 3
    call exchange()
    do i = 1, n
      r(i) = r(i) + i
    end do
    r = r + w(1:n)
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,7z17.16)') rank, sum(u), sum(r), sum(w), w(1), w(2), w(3), w(4)
  call MPI_Finalize(ierr)
end program do_concurrent
