! Rank 0 adds to a file and says so; rank 1, which has it open, reads what is new. (Small records would stay in a buffer.)
program flushed
  use mpi
  implicit none
  integer, parameter :: n = 600
  double precision :: a(n), b(n), field(n), table(20000)
  integer :: rank, error, i, t, length
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  a = [(i + rank, i = 1, n)]
  b = 0
  table = 0
  inquire (iolength=length) table
  if (rank == 0) then
    open (10, file='flushed_file_f90.table', access='direct', recl=length, form='unformatted', status='replace')
    write (10, rec=1) table
    write (10, rec=2) table
    write (10, rec=3) table
    flush (10)
  end if
  call MPI_Barrier(MPI_COMM_WORLD, error)
  if (rank == 1) open (10, file='flushed_file_f90.table', access='direct', recl=length, form='unformatted', status='old')
  do t = 1, 3
    do i = 1, n
      b(i) = 0.5d0 * b(i) + a(i)
    end do
    if (rank == 0) then
      do i = 1, size(table)
        table(i) = b(mod(i, n) + 1) + t
      end do
      write (10, rec=t) table
      flush (10)
      call MPI_Send(b, n, MPI_DOUBLE_PRECISION, 1, 1, MPI_COMM_WORLD, error)
      do i = 1, n
        a(i) = 0.5d0 * a(i) + i
      end do
    else if (rank == 1) then
      call MPI_Recv(field, n, MPI_DOUBLE_PRECISION, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
      read (10, rec=t) table
      do i = 1, n
        b(i) = 0.5d0 * b(i) + table(mod(i, 20000) + 1)
      end do
      do i = 1, n
        a(i) = 0.5d0 * a(i) + field(i)
      end do
    end if
  end do
  print '(i3,2z17.16)', rank, sum(a), sum(b)
  if (rank < 2) close (10)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  if (rank == 0) then
    open (10, file='flushed_file_f90.table', access='stream')
    close (10, status='delete')
  end if
  call MPI_Finalize(error)
end program flushed
