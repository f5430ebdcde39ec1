! A PURE procedure must not call what lets MPI go on.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 60
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  integer :: last = n
  real(8) :: a(300, 0:n + 1)
contains
  pure subroutine work(v, q, s)
    real(8), intent(in) :: v(300, 0:n + 1)
    real(8), intent(inout) :: q(n), s(0:n + 1)
    integer :: i, j

    do i = 1, last
      do j = 1, last
        s(i) = 0.5d0 * s(i) + j
      end do
    end do
    do i = 1, n
      do j = 1, last
        q(i) = 0.5d0 * q(i) + v(3, i + 1)
      end do
    end do
  end subroutine work
end module grid

program pure_caller
  use grid
  implicit none
  integer :: i, step

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do i = 0, n + 1
    u(i) = i + 100 * rank
  end do
  do i = 0, n + 1
    a(:, i) = u(i)
  end do
  do step = 1, 3
    call MPI_Sendrecv(a(1, 1), 300, MPI_DOUBLE_PRECISION, left, 1, a(1, n + 1), 300, MPI_DOUBLE_PRECISION, right, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call work(a, r, w)
    a(3, 1:n) = a(4, 1:n) + 0.25d0 * r
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,4z17.16)') rank, sum(u), sum(r), sum(w), sum(a)
  call MPI_Finalize(ierr)
end program pure_caller
