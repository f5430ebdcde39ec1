program main
  use mpi
  implicit none
  integer, parameter :: n = 1200
  double precision :: d(n), e(n)
  integer :: ierr, me, i, step
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, me, ierr)
  d = [(4 * i + me, i = 1, n)]
  e = [(5 * i, i = 1, n)]
  do step = 1, 3
    call largest(d(1:n:2), (n + 1) / 2)
    do i = 1, n
      e(i) = 0.5d0 * e(i) + step
    end do
    do i = 1, n
      e(i) = 0.5d0 * e(i) + d(i)
    end do
    d = 0.5d0 * d + me
  end do
  write(*, '(Z16.16)') (transfer(e(i), 0_8), i = 1, n, 7)
  call mpi_finalize(ierr)
contains
  subroutine largest(x, m)
    integer :: m, error
    double precision :: x(:)
    call mpi_allreduce(MPI_IN_PLACE, x, m, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
  end subroutine
end program
