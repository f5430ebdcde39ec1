! Unit 6 is a file here, which another rank reads when it is told.
program standard
  use mpi
  implicit none
  integer, parameter :: n = 600
  double precision :: a(n), b(n)
  integer :: rank, error, i, t, k, total
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  a = [(i + rank, i = 1, n)]
  b = 0
  total = 0
  if (rank == 0) open (unit=6, file='standard_unit.table', status='replace')
  do t = 1, 3
    if (rank == 0) then
      do i = 1, n
        b(i) = 0.5d0 * b(i) + i
      end do
      write (6, *) t
      flush (6)
      call MPI_Send(a, n, MPI_DOUBLE_PRECISION, 1, 1, MPI_COMM_WORLD, error)
      do i = 1, n
        b(i) = 0.5d0 * b(i) + a(i)
      end do
      call MPI_Barrier(MPI_COMM_WORLD, error)
    else
      if (rank == 1) then
        call MPI_Recv(b, n, MPI_DOUBLE_PRECISION, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        open (unit=11, file='standard_unit.table', status='old')
        do i = 1, t
          read (11, *) k
          total = 10 * total + k
        end do
        close (11)
      end if
      call MPI_Barrier(MPI_COMM_WORLD, error)
    end if
  end do
  if (rank == 1) print *, total
  if (rank == 0) close (6, status='delete')
  call MPI_Finalize(error)
end program standard
