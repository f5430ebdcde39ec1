! The update of u makes what is sent: its first and last two planes first, so that the rest is done while they travel.
module field
  implicit none
  integer :: n, first, last
  real(8), allocatable :: u(:, :), d(:, :)
end module

subroutine exchange(left, right)
  use mpi
  use field
  implicit none
  integer, intent(in) :: left, right
  integer :: ierr
  ! overlap: split-producer
  call mpi_sendrecv(u(1, 1), n, MPI_DOUBLE_PRECISION, left, 1, u(1, n + 1), n, MPI_DOUBLE_PRECISION, right, 1, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call mpi_sendrecv(u(1, n), n, MPI_DOUBLE_PRECISION, right, 2, u(1, 0), n, MPI_DOUBLE_PRECISION, left, 2, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
end subroutine

program update
  use mpi
  use field
  implicit none
  integer :: rank, size, left, right, step, i, j, ierr
  real(8) :: s
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank < size - 1)
  n = 40
  first = merge(1, 2, rank > 0)
  last = merge(n, n - 1, rank < size - 1)
  allocate (u(1:n, 0:n + 1), d(1:n, 0:n + 1))
  do j = 0, n + 1
    do i = 1, n
      u(i, j) = mod(i * 7 + j * 11 + rank, 37)
      d(i, j) = 0
    end do
  end do
  do step = 1, 5
    do j = first, last
      do i = 1, n
        u(i, j) = u(i, j) + 0.25d0 * d(i, j)
      end do
    end do
    call exchange(left, right)
    do j = 1, n
      do i = 1, n
        d(i, j) = u(i, j - 1) - 2 * u(i, j) + u(i, j + 1)
      end do
    end do
    if (maxval(abs(d(:, 1:n))) > 1d6) go to 100
  end do
100 continue
  s = 0
  do j = 0, n + 1
    do i = 1, n
      s = s + u(i, j) * (i + 2 * j)
    end do
  end do
  write (*, "(i4,z17.16)") rank, s
  call mpi_finalize(ierr)
end program
