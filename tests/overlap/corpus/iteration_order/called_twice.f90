! A procedure that is called again with its arguments exchanged.
module recurrence
  implicit none
  integer, parameter :: n = 40
contains
  subroutine f(x, y, c)
    double precision :: x(0:n), y(0:n), c(0:n)
    integer :: i
    do i = 1, n
      c(i) = 0.5d0 * c(i - 1) + x(i - 1)
      y(i) = c(i)
    end do
  end subroutine f
end module recurrence
program called_twice
  use mpi
  use recurrence
  implicit none
  double precision :: a(0:n), b(0:n), c(0:n), d(0:n)
  integer :: rank, size, ierr, step, i
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  do i = 0, n
    a(i) = i + rank
    b(i) = 0
    c(i) = i
    d(i) = 2 * i
  end do
  do step = 1, 3
    call MPI_Sendrecv(a(n), 1, MPI_DOUBLE_PRECISION, mod(rank + 1, size), 1, a(0), 1, MPI_DOUBLE_PRECISION, &
       mod(rank + size - 1, size), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call f(a, b, c)
    call f(b, a, d)
  end do
  print '(i4,(6z17.16))', rank, a, b
  call MPI_Finalize(ierr)
end program called_twice
