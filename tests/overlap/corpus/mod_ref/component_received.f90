! A receive into a component of an argument, completed by another procedure that is given the requests alone.
module grids
  use mpi
  implicit none
  integer, parameter :: n = 40
  type :: grid
    double precision :: h(n) = 0, u(n) = 1
  end type grid
contains
  subroutine start(g, req, left, right)
    type(grid), intent(inout) :: g
    integer, intent(in) :: left, right
    integer :: req(2), ierr
    call MPI_Irecv(g%h, n, MPI_DOUBLE_PRECISION, right, 3, MPI_COMM_WORLD, req(1), ierr)
    call MPI_Isend(g%u, n, MPI_DOUBLE_PRECISION, left, 3, MPI_COMM_WORLD, req(2), ierr)
  end subroutine start
  subroutine finish(req)
    integer :: req(2), ierr
    call MPI_Waitall(2, req, MPI_STATUSES_IGNORE, ierr)
  end subroutine finish
end module grids
program component_received
  use mpi
  use grids
  implicit none
  type(grid) :: g
  double precision :: r(n)
  integer :: req(2), i, step, rank, size, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  r = 0
  do step = 1, 4
    call start(g, req, modulo(rank - 1, size), modulo(rank + 1, size))
    call finish(req)
    do i = 1, n
      r(i) = r(i) + g%h(i)
    end do
    do i = 1, n
      g%u(i) = g%u(i) + 0.25d0 * r(i)
    end do
  end do
  print '(i4,(6z17.16))', rank, g%u, r
  call MPI_Finalize(ierr)
end program component_received
