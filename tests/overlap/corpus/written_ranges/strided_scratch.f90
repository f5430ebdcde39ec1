! A line of which each turn sets every other element, and finds the rest as the first turn left it.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
end module grid

program strided_scratch
  use grid
  implicit none
  integer :: i, step, j
  real(8) :: line(n)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do i = 0, n + 1
    u(i) = i + 100 * rank
  end do
  do step = 1, 3
    call MPI_Sendrecv(u(n), 1, MPI_DOUBLE_PRECISION, right, 1, u(0), 1, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do j = 1, n
      if (j == 1) line(2:n:2) = 5d0
      line(1:n:2) = u(j - 1)
      do i = 1, n
        w(j) = w(j) + line(i)
      end do
    end do
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,3z17.16)') rank, sum(u), sum(r), sum(w)
  call MPI_Finalize(ierr)
end program strided_scratch
