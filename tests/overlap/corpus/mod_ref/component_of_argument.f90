! What procedures do with components of their arguments.
module grids
  implicit none
  integer, parameter :: n = 40
  type :: grid
    double precision :: u(n) = 1, r(n) = 0
  end type grid
contains
  subroutine smooth(g)
    type(grid), intent(inout) :: g
    integer :: i
    do i = 1, n
      g%r(i) = g%r(i) + 0.5d0 * g%u(i)
    end do
  end subroutine smooth
end module grids
program component_of_argument
  use mpi
  use grids
  implicit none
  type(grid) :: g
  double precision :: out(n), in(n)
  integer :: i, step, rank, size, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  do step = 1, 4
    do i = 1, n
      out(i) = rank + i * step
    end do
    call MPI_Sendrecv(out, n, MPI_DOUBLE_PRECISION, modulo(rank - 1, size), 3, in, n, MPI_DOUBLE_PRECISION, &
                      modulo(rank + 1, size), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      g%u(i) = 0.5d0 * g%u(i) + in(i)
    end do
    call smooth(g)
  end do
  print '(i4,(6z17.16))', rank, g%u, g%r
  call MPI_Finalize(ierr)
end program component_of_argument
