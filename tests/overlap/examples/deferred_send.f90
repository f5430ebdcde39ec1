! Every rank sends its boundary to the next one, then works on something else.
program deferred_send
  use mpi_f08
  implicit none
  integer, parameter :: n = 4000
  real(8) :: edge(n), halo(n), field(n), other(n)
  integer :: rank, size, step, i

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  do i = 1, n
    field(i) = mod(i, 13) + rank
    other(i) = 0.5d0 * i
    halo(i) = 0d0
  end do
  do step = 1, 4
    do i = 1, n
      edge(i) = field(i) + step
    end do
    if (mod(rank, 2) == 0) then
      ! overlap: nonblocking
      if (rank < size - 1) call MPI_Send(edge, n, MPI_DOUBLE_PRECISION, rank + 1, 3, MPI_COMM_WORLD)
    else
      call MPI_Recv(halo, n, MPI_DOUBLE_PRECISION, rank - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    end if
    do i = 2, n
      other(i) = 0.5d0 * other(i - 1) + 0.25d0 * other(i)
    end do
    do i = 1, n
      field(i) = 0.5d0 * field(i) + 0.25d0 * halo(i) + 0.125d0 * other(i)
    end do
  end do
  print '(i4,3z17.16)', rank, sum(field), sum(halo), sum(other)
  call MPI_Finalize()
end program deferred_send
