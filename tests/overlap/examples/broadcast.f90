! The parameters of a run are broadcast one after the other; each rank fills its arrays meanwhile.
program parameters
  use mpi
  implicit none
  integer, parameter :: n = 5000
  real(8) :: table(n), field(n)
  integer :: rank, steps, i, ierr

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  steps = 0
  table = 0d0
  if (rank == 0) then
    steps = 6
    do i = 1, n
      table(i) = 1d0 / i
    end do
  end if
  ! left: a few bytes, once
  call MPI_Bcast(steps, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  ! overlap: nonblocking
  call MPI_Bcast(table, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
  do i = 1, n
    field(i) = mod(i * 7, 29) + rank
  end do
  do i = 2, n
    field(i) = 0.5d0 * field(i) + 0.25d0 * field(i - 1)
  end do
  do i = 1, n
    field(i) = field(i) + steps * table(i)
  end do
  print '(i4,z17.16)', rank, sum(field)
  call MPI_Finalize(ierr)
end program parameters
