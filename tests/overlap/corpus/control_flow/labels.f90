! A label at a call that is jumped to, and one that ends a loop: neither may be lost.
program main
  use mpi
  implicit none
  integer, parameter :: n = 3000
  double precision :: a(n), b(n), c(n), d(n)
  integer :: i, rank, np, turn, ierr
  turn = 0
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, np, ierr)
  do i = 1, n
    a(i) = i + rank
    c(i) = 0
  end do
  do i = 1, n
    d(i) = 0.5 * i
  end do
10 call mpi_sendrecv(a, n, MPI_DOUBLE_PRECISION, mod(rank + 1, np), 1, b, n, MPI_DOUBLE_PRECISION, &
     mod(rank + np - 1, np), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  do i = 1, n
    c(i) = 0.5 * d(i) + c(i)
  end do
  do i = 1, n
    c(i) = c(i) + b(i)
    a(i) = 0.5 * a(i) + b(i)
  end do
  turn = turn + 1
  if (turn < 3) goto 10
  call mpi_sendrecv(a, n, MPI_DOUBLE_PRECISION, mod(rank + 1, np), 2, b, n, MPI_DOUBLE_PRECISION, &
     mod(rank + np - 1, np), 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  do i = 1, n
    c(i) = 0.5 * d(i) + c(i)
  end do
  do 20 i = 1, 3
    turn = turn + 1
20 call mpi_bcast(b, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
  write(*, '(Z16.16)') (transfer(c(i) + b(i), 0_8), i = 1, n, 7)
  call mpi_finalize(ierr)
end program
