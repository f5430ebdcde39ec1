! Variables named like the functions that divided loops need.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  integer :: min = 3, last = n
contains
  subroutine local()
    integer :: i, max

    max = 3
    if (rank > 100) print *, max
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(last + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, last
      r(i) = r(i) + 0.5d0 * u(i + 1)
    end do
  end subroutine local

  subroutine theirs()
    integer :: i

    min = min + 1
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(last + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, last
      r(i) = r(i) + 0.25d0 * u(i + 1)
    end do
  end subroutine theirs
end module grid

program own_max
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
    call local()
    call theirs()
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,4z17.16)') rank, sum(u), sum(r), sum(w), min + 0d0
  call MPI_Finalize(ierr)
end program own_max
