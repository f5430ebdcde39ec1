! Names of a module that mean something else, or nothing, where it is used with other names.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 200
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  integer :: k, m = n, nx
  real(8), allocatable :: long(:)
  real(8) :: a(300, 0:n + 1)
  integer, parameter :: wide = 9, rows = 10
  real(8), dimension(wide, 0:n + 1, rows) :: u2, f = 0, s = 0
  real(8), dimension(wide, rows) :: in, out
end module grid

module counting
  use grid, only: counter => k, last => m, a, r, long, left, right, ierr
  use mpi
  implicit none
contains
  subroutine counted()
    integer :: k

    call MPI_Sendrecv(a(1, 1), 300, MPI_DOUBLE_PRECISION, left, 1, a(1, last + 1), 300, MPI_DOUBLE_PRECISION, right, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    do counter = 1, last
      long(counter) = long(counter) + 1
    end do
    do k = 1, last
      r(k) = r(k) + a(3, k + 1)
    end do
    a(3, 1:last) = a(4, 1:last) + 0.25d0 * r(1:last)
  end subroutine counted
end module counting

module halo
  use grid, only: edge => nx, nx => n, rows, wide, u2, f, s, in, out, left, right, ierr
  use mpi
  implicit none
contains
  subroutine advance(first, last)
    integer, intent(in) :: first, last
    integer :: i, j, m

    do j = 1, rows
      do m = 1, wide
        out(m, j) = u2(m, 1, j)
      end do
    end do
    call MPI_Sendrecv(out, wide * rows, MPI_DOUBLE_PRECISION, left, 1, in, wide * rows, MPI_DOUBLE_PRECISION, right, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    do j = 1, rows
      do m = 1, wide
        u2(m, 0, j) = in(m, j)
        u2(m, edge + 1, j) = in(m, j)
      end do
    end do
    do j = 1, rows
      do i = first, last
        do m = 1, wide
          f(m, i, j) = 0.5d0 * u2(m, i, j) + 0.25d0 * u2(m, i - 1, j) + 0.125d0 * u2(m, i + 1, j)
        end do
      end do
      do i = first, last - 1
        do m = 1, wide
          s(m, i, j) = 0.5d0 * s(m, i, j) + f(m, i, j)
        end do
      end do
    end do
    do j = 1, rows
      do i = 1, edge
        do m = 1, wide
          u2(m, i, j) = 0.5d0 * u2(m, i, j) + 0.25d0 * s(m, i, j)
        end do
      end do
    end do
  end subroutine advance
end module halo

program renamed_by_use
  use grid
  use counting, only: counted
  use halo, only: advance
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
    u2(:, i, :) = u(i)
  end do
  nx = n - 3 * rank - 1
  allocate (long(m))
  long = 1
  do step = 1, 3
    call counted()
    call advance(mod(rank, 2) + 1, nx - mod(step, 2))
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,7z17.16)') rank, sum(u), sum(r), sum(w), sum(a), sum(u2), sum(s), sum(long)
  call MPI_Finalize(ierr)
end program renamed_by_use
