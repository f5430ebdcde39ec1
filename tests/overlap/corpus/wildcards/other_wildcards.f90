! Rank 0 takes what comes first; rank 2 may send only when rank 1 has been served, as a token says.
program wildcards
  use mpi
  implicit none
  integer, parameter :: n = 600, anyone = MPI_ANY_SOURCE
  double precision :: u(n), h(n), w(n), token(n)
  integer :: rank, ranks, error, t, i, r, state(MPI_STATUS_SIZE)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  h = 0
  w = 0
  u = [(i + rank, i = 1, n)]
  do t = 1, 5
    if (rank == 0) then
      do r = 1, ranks - 1
        call MPI_Recv(h, n, MPI_DOUBLE_PRECISION, anyone, 7, MPI_COMM_WORLD, state, error)
        print *, t, 'rank', state(MPI_SOURCE)
      end do
    else if (rank == 1) then
      call MPI_Ssend(u, n, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, error)
      if (ranks > 2) call MPI_Send(u, n, MPI_DOUBLE_PRECISION, 2, 8, MPI_COMM_WORLD, error)
    else if (rank == 2) then
      do i = 1, n
        u(i) = 0.5d0 * u(i) + i
      end do
      call MPI_Recv(token, n, MPI_DOUBLE_PRECISION, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
      call MPI_Send(u, n, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, error)
      do i = 1, n
        w(i) = 0.5d0 * w(i) + token(i)
      end do
    end if
    call MPI_Barrier(MPI_COMM_WORLD, error)
  end do
  print '(i3,3z17.16)', rank, sum(u), sum(h), sum(w)
  call MPI_Finalize(error)
end program wildcards
