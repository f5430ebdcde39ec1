! What implied loops read: in their bounds, and in indices.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  integer :: which(0:n + 1) = 1
end module grid

program implied_loops
  use grid
  implicit none
  integer :: i, step
  integer :: j
  real(8) :: v(n)
  character(20) :: text = '1 2 3'

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do i = 0, n + 1
    u(i) = i + 100 * rank
  end do
  do step = 1, 3
    which = step
    which(1) = 2 + rank
    call MPI_Sendrecv(which(1), 1, MPI_INTEGER, left, 1, which(n + 1), 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      w(i) = w(i) + sum([(1d0, j = 1, which(n + 1))])
    end do
    r = r + which(n + 1)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(which(1), 1, MPI_INTEGER, left, 1, which(n + 1), 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      w(i) = w(i) + sum([(r(which(j)), j = n, n + 1)])
    end do
    r = r + which(n + 1)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(which(1), 1, MPI_INTEGER, left, 1, which(n + 1), 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      v = 0
      read (text, *) (v(which(n + 1) + j), j = 1, 3)
      w(i) = w(i) + v(3) * i + v(5)
    end do
    r = r + which(n + 1)
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,(3z17.16))') rank, u, r, w
  call MPI_Finalize(ierr)
end program implied_loops
