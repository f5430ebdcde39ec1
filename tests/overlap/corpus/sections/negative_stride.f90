! Sections that run downwards: one that is read, and one that is received into.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 24
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  real(8) :: v(0:n + 1, n), s(n, n) = 0, t(n, n) = 0
end module grid

program negative_stride
  use grid
  implicit none
  integer :: i, step, j

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do i = 0, n + 1
    u(i) = i + 100 * rank
  end do
  do j = 1, n
    v(:, j) = u + 3 * j
  end do
  do step = 1, 3
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      r(i) = r(i) + 0.5d0 * sum(u(n + 1:i:-1))
    end do
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  do step = 1, 3
    call MPI_Sendrecv(v(1, 1:n), n, MPI_DOUBLE_PRECISION, left, 1, v(n + 1, n:1:-1), n, MPI_DOUBLE_PRECISION, right, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    do j = 1, n
      do i = 1, n
        s(i, j) = s(i, j) + v(i + 1, j)
      end do
    end do
    do j = 1, n
      do i = 1, n
        t(i, j) = t(i, j) + i
      end do
    end do
    v(1:n, :) = v(1:n, :) + 0.25d0 * s
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,6z17.16)') rank, sum(u), sum(r), sum(w), sum(v), sum(s), sum(t)
  call MPI_Finalize(ierr)
end program negative_stride
