! A type that leads from the buffer to another variable.
program addresses_in_type
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: kind, lengths(2), types(2), rank, size, i, step, ierr
  integer(MPI_ADDRESS_KIND) :: places(2)
  double precision :: u(n), w(n), z(4), q(4)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call MPI_Get_address(z, places(1), ierr)
  call MPI_Get_address(q, places(2), ierr)
  places(2) = places(2) - places(1)
  places(1) = 0
  lengths = 4
  types = MPI_DOUBLE_PRECISION
  call MPI_Type_create_struct(2, lengths, places, types, kind, ierr)
  call MPI_Type_commit(kind, ierr)
  u = 1
  w = 0
  q = 0
  do step = 1, 3
    if (rank == 0) z = step
    if (rank == 0) q = 2 * step
    call MPI_Bcast(z, 1, kind, 0, MPI_COMM_WORLD, ierr)
    do i = 1, n
      w(i) = w(i) + q(2) * i
    end do
    do i = 1, n
      u(i) = 0.5d0 * u(i) + z(1)
    end do
  end do
  print '(i4,(6z17.16))', rank, u, w
  call MPI_Finalize(ierr)
end program addresses_in_type
