! A request that has gone to another variable, and one in a variable of a derived type.
program copied_request
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr, i, step
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  integer :: req, reqs(2)
  type halo
    integer :: request(1)
    real(8) :: ghost = 0
  end type
  type(halo) :: mine, theirs
  real(8) :: z(0:1) = 0, y(2) = 0
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = [(i + 100 * rank, i=0, n + 1)]
  do step = 1, 3
    y = u(1)
    call MPI_Irecv(z(0), 1, MPI_DOUBLE_PRECISION, left, 7, MPI_COMM_WORLD, req, ierr)
    reqs(1) = req
    call MPI_Isend(y, 1, MPI_DOUBLE_PRECISION, right, 7, MPI_COMM_WORLD, req, ierr)
    reqs(2) = req
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE, ierr)
    do i = 1, n
      w(i) = w(i) + z(0)
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Irecv(mine%ghost, 1, MPI_DOUBLE_PRECISION, left, 8, MPI_COMM_WORLD, mine%request(1), ierr)
    theirs%request = mine%request
    call MPI_Send(u(1), 1, MPI_DOUBLE_PRECISION, right, 8, MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call MPI_Wait(theirs%request(1), MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      w(i) = w(i) + mine%ghost
    end do
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,3z17.16)') rank, sum(u), sum(r), sum(w)
  call MPI_Finalize(ierr)
end program copied_request
