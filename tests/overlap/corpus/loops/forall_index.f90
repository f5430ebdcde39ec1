! A FORALL whose index is called like a variable, and one with more than assignments in it.
program forall_index
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr, i, step
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  real(8) :: b(n) = 1
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = [(i + 100 * rank, i=0, n + 1)]
  do step = 1, 3
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    i = 3
    w(i) = 2
    forall (i = 1:n) w(i) = w(i) + u(i + 1)
    b = b + w(1:n)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    forall (i = 1:n)
      r(i) = r(i) + 1
      where (w > 0) w = w + u(n + 1)
    end forall
    b = b + 2 * w(1:n)
    u(1:n) = u(1:n) + 0.25d0 * b
  end do
  write (*, '(i4,3z17.16)') rank, sum(u), sum(r), sum(w)
  call MPI_Finalize(ierr)
end program forall_index
