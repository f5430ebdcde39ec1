program main
  use mpi
  implicit none
  integer :: me, np, ierr, step
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, me, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, np, ierr)
  do step = 1, 3
    call ring(mod(step, np))
  end do
  call mpi_finalize(ierr)
contains
  subroutine ring(first)
    integer, intent(in) :: first
    integer :: tag, error, value, got
    value = me + first
    got = 0
    if (me == first) then
      tag = me + 1
      call mpi_send(value, 1, MPI_INTEGER, MPI_PROC_NULL, tag, MPI_COMM_WORLD, error)
    end if
    if (np > 1) then
      tag = 2010
      if (me + 1 == np) then
        call mpi_send(value, 1, MPI_INTEGER, 0, tag, MPI_COMM_WORLD, error)
      end if
      if (me == 0) then
        call mpi_recv(got, 1, MPI_INTEGER, np - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        got = got + tag
      end if
    end if
    if (me == 0) print *, first, got
  end subroutine
end program
