program requests_in_parts
  use mpi
  implicit none
  integer, parameter :: n = 900
  double precision :: a(n), b(n), c(n), x(n), y(n)
  integer :: rank, np, next, prev, step, i, k, ierr, r(3)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
  next = mod(rank + 1, np)
  prev = mod(rank + np - 1, np)
  a = 0
  b = 0
  c = 0
  do step = 1, 3
    do i = 1, n
      x(i) = i + rank * step
    end do
    k = 1 + mod(step, 2)
    call MPI_Irecv(a, n, MPI_DOUBLE_PRECISION, prev, 1, MPI_COMM_WORLD, r(1), ierr)
    call MPI_Irecv(b, n, MPI_DOUBLE_PRECISION, prev, 2, MPI_COMM_WORLD, r(2), ierr)
    call MPI_Send(x, n, MPI_DOUBLE_PRECISION, next, 1, MPI_COMM_WORLD, ierr)
    call MPI_Send(x, n, MPI_DOUBLE_PRECISION, next, 2, MPI_COMM_WORLD, ierr)
    call MPI_Wait(r(k), MPI_STATUS_IGNORE, ierr)
    call MPI_Irecv(c, n, MPI_DOUBLE_PRECISION, prev, 3, MPI_COMM_WORLD, r(k), ierr)
    call MPI_Send(x, n, MPI_DOUBLE_PRECISION, next, 3, MPI_COMM_WORLD, ierr)
    call MPI_Waitall(2, r(1), MPI_STATUSES_IGNORE, ierr)
    do i = 1, n
      y(i) = c(i) + 0.5d0 * i
    end do
    do i = 1, n
      y(i) = y(i) + a(n + 1 - i) - b(i)
    end do
    print '(i3,z17.16)', rank, sum(y)
  end do
  call MPI_Finalize(ierr)
end program requests_in_parts
