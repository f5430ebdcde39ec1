! A row of a Fortran array is no contiguous memory. The compiler passes a copy, where the message's own copy is filled and emptied.
program rows
  use mpi
  implicit none
  integer, parameter :: n = 300, m = 5
  real(8) :: u(0:m, n), w(n)
  integer :: rank, size, next, previous, step, i, ierr

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  next = mod(rank + 1, size)
  previous = mod(rank + size - 1, size)
  do i = 1, n
    u(:, i) = mod(i * 3 + rank, 17)
  end do
  w = 0d0
  do step = 1, 3
    ! done: nonblocking
    call MPI_Sendrecv(u(m, 1:n), n, MPI_DOUBLE_PRECISION, next, 0, u(0, 1:n), n, MPI_DOUBLE_PRECISION, previous, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    do i = 2, n
      w(i) = 0.5d0 * w(i - 1) + 0.25d0 * i
    end do
    do i = 1, n
      u(m, i) = 0.5d0 * u(0, i) + w(i)
    end do
  end do
  print '(i4,z17.16)', rank, sum(u)
  call MPI_Finalize(ierr)
end program rows
