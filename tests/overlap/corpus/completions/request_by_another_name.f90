! Requests with another name, and in a procedure that is contained.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0
contains
  subroutine overlaid()
    integer :: request, same
    logical :: done
    equivalence (request, same)
    call MPI_Irecv(u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, request, ierr)
    call MPI_Send(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, ierr)
    call MPI_Test(same, done, MPI_STATUS_IGNORE, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  end subroutine overlaid

  subroutine polled()
    integer :: request
    logical :: done
    call MPI_Irecv(u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, request, ierr)
    call MPI_Send(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, ierr)
    call poll()
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  contains
    subroutine poll()
      call MPI_Test(request, done, MPI_STATUS_IGNORE, ierr)
    end subroutine poll
  end subroutine polled
end module grid

program other_request
  use grid
  implicit none
  integer :: i, step

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = [(i + 100 * rank, i=0, n + 1)]
  do step = 1, 3
    call overlaid()
    r = r + 0.5d0 * u(2:n + 1)
    call polled()
    r = r + 0.25d0 * u(2:n + 1)
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,2z17.16)') rank, sum(u), sum(r)
  call MPI_Finalize(ierr)
end program other_request
