! Fluxes and their differences, nest after nest in each plane. The nests' ends are other variables than where the halo begins, and
! each rank has others.
module plane
  use mpi
  implicit none
  integer, parameter :: most = 24, rows = 10, wide = 9
  integer :: nx, first, last, rank, ranks, left, right, requests(4)
  real(8) :: out(wide, rows, 4), in(wide, rows, 4)
  real(8), dimension(wide, -1:most + 2, rows) :: u, f, r
contains
  subroutine exchange()
    integer :: ierr, j

    do j = 1, rows
      out(:, j, 1:2) = u(:, 1:2, j)
      out(:, j, 3:4) = u(:, nx - 1:nx, j)
    end do
    call MPI_Irecv(in(1, 1, 1), 2 * wide * rows, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Irecv(in(1, 1, 3), 2 * wide * rows, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Isend(out(1, 1, 1), 2 * wide * rows, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, requests(3), ierr)
    call MPI_Isend(out(1, 1, 3), 2 * wide * rows, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, requests(4), ierr)
    ! overlap: split-loop
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierr)
    if (left /= MPI_PROC_NULL) then
      do j = 1, rows
        u(:, -1, j) = in(:, j, 1)
        u(:, 0, j) = in(:, j, 2)
      end do
    end if
    if (right /= MPI_PROC_NULL) then
      do j = 1, rows
        u(:, nx + 1, j) = in(:, j, 3)
        u(:, nx + 2, j) = in(:, j, 4)
      end do
    end if
  end subroutine exchange

  subroutine residual()
    integer :: i, j, m, from, to
    real(8) :: slope

    call exchange()
    from = 0
    if (left == MPI_PROC_NULL) from = 1
    to = nx + 1
    if (right == MPI_PROC_NULL) to = nx
    do j = 1, rows
      do i = from, to
        do m = 1, wide
          slope = 0.5d0 * u(m, i, j)
          f(m, i, j) = slope + 0.125d0
        end do
      end do
      do i = first, last
        do m = 1, wide
          r(m, i, j) = r(m, i, j) - 0.25d0 * (f(m, i + 1, j) - f(m, i - 1, j))
        end do
      end do
      do i = first, last
        do m = 1, wide
          r(m, i, j) = r(m, i, j) + 0.0625d0 * (u(m, i - 2, j) + u(m, i + 2, j) - 2d0 * u(m, i, j))
        end do
      end do
    end do
    do j = 1, rows
      do i = first, last
        do m = 1, wide
          r(m, i, j) = 0.5d0 * r(m, i, j) + 0.03125d0 * i
        end do
      end do
    end do
  end subroutine residual
end module plane

program nests_in_rows
  use plane
  implicit none
  integer :: ierr, step, i, j

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  nx = most - 3 * rank
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
  first = merge(1, 2, rank > 0)
  last = merge(nx, nx - 1, rank < ranks - 1)
  do j = 1, rows
    do i = -1, most + 2
      u(:, i, j) = mod(5 * i + 3 * j + rank + 20, 17)
      r(:, i, j) = 0
    end do
  end do
  do step = 1, 4
    call residual()
    do j = 1, rows
      do i = first, last
        u(:, i, j) = u(:, i, j) + 0.5d0 * r(:, i, j)
      end do
    end do
  end do
  write (*, '(i4,z17.16)') rank, sum(u(:, 1:nx, :))
  call MPI_Finalize(ierr)
end program nests_in_rows
