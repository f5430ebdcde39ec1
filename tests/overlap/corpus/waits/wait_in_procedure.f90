! A wait in a procedure of its own, which goes below work that does not need it.
module comm
  use mpi
  implicit none
  integer, parameter :: n = 40
  double precision :: h(n) = 0, u(n) = 1
  integer :: req(2)
contains
  subroutine start(left, right)
    integer, intent(in) :: left, right
    integer :: ierr
    call MPI_Irecv(h, n, MPI_DOUBLE_PRECISION, right, 3, MPI_COMM_WORLD, req(1), ierr)
    call MPI_Isend(u, n, MPI_DOUBLE_PRECISION, left, 3, MPI_COMM_WORLD, req(2), ierr)
  end subroutine start
  subroutine finish()
    integer :: ierr
    call MPI_Waitall(2, req, MPI_STATUSES_IGNORE, ierr)
  end subroutine finish
end module comm
program moved
  use mpi
  use comm
  implicit none
  double precision :: w(n)
  integer :: i, step, rank, size, left, right, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  left = modulo(rank - 1, size)
  right = modulo(rank + 1, size)
  w = rank
  do step = 1, 4
    call start(left, right)
    call finish()
    do i = 1, n
      w(i) = 0.5d0*w(i) + i
    end do
    do i = 1, n
      u(i) = u(i) + 0.25d0*h(i) + w(i)
    end do
  end do
  print '(i4,6z17.16)', rank, sum(u), sum(h), sum(w)
  call MPI_Finalize(ierr)
end program moved
