! An exchange with an array of requests, and the stencil that uses what it brings.
program relaxation
  use mpi
  implicit none
  integer, parameter :: m = 60, n = 24
  double precision :: u(m, 0:n+1), v(m, 0:n+1)
  integer :: ierr, rank, ranks, nl, below, above, step, i, j, requests(4)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  nl = n / ranks
  below = rank - 1
  if (rank == 0) below = MPI_PROC_NULL
  above = rank + 1
  if (above == ranks) above = MPI_PROC_NULL
  do j = 0, n + 1
    do i = 1, m
      u(i, j) = mod(3 * i + 7 * j + rank, 11)
    end do
  end do
  v = u
  do step = 1, 5
    call MPI_Irecv(u(1, 0), m, MPI_DOUBLE_PRECISION, below, 1, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Irecv(u(1, nl+1), m, MPI_DOUBLE_PRECISION, above, 2, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Isend(u(1, nl), m, MPI_DOUBLE_PRECISION, above, 1, MPI_COMM_WORLD, requests(3), ierr)
    call MPI_Isend(u(1, 1), m, MPI_DOUBLE_PRECISION, below, 2, MPI_COMM_WORLD, requests(4), ierr)
    ! overlap: split-loop
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierr)
    do j = 1, nl
      do i = 2, m - 1
        v(i, j) = 0.25d0 * (u(i-1, j) + u(i+1, j) + u(i, j-1) + u(i, j+1))
      end do
    end do
    do j = 1, nl
      do i = 2, m - 1
        u(i, j) = v(i, j)
      end do
    end do
  end do
  do j = 1, nl
    print '(i3,i3,z17.16)', rank, j, sum(u(:, j))
  end do
  call MPI_Finalize(ierr)
end program relaxation
