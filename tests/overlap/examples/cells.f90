! Each rank has several cells, of sizes of their own; what a cell's nests keep away from depends on the cell.
module cells
  use mpi
  implicit none
  integer, parameter :: count = 3, most = 20
  integer :: size(2, count), begin(count), rank, ranks, next, previous
  real(8) :: out(count * most), in(count * most)
  real(8) :: u(0:most + 1, 0:most + 1, count), s(0:most + 1, 0:most + 1, count), r(0:most + 1, 0:most + 1, count)
contains
  subroutine faces()
    integer :: requests(2), ierr, c, i, p

    p = 0
    do c = 1, count
      do i = 1, size(1, c)
        p = p + 1
        out(p) = u(i, size(2, c), c)
      end do
    end do
    call MPI_Irecv(in, count * most, MPI_DOUBLE_PRECISION, previous, 3, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(out, count * most, MPI_DOUBLE_PRECISION, next, 3, MPI_COMM_WORLD, requests(2), ierr)
    ! overlap: split-loop
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    p = 0
    do c = 1, count
      do i = 1, size(1, c)
        p = p + 1
        u(i, size(2, c) + 1, c) = in(p)
      end do
    end do
    call advance()
  end subroutine faces

  subroutine advance()
    integer :: c, i, j

    do c = 1, count
      do j = 0, size(2, c) + 1
        do i = 1, size(1, c)
          s(i, j, c) = 0.5d0 * u(i, j, c) + 0.125d0
        end do
      end do
      do j = begin(c), size(2, c)
        do i = 1, size(1, c)
          r(i, j, c) = r(i, j, c) + 0.25d0 * (s(i, j - 1, c) + s(i, j + 1, c) - u(i, j, c))
        end do
      end do
    end do
  end subroutine advance
end module cells

program many_cells
  use cells
  implicit none
  integer :: ierr, step, c, i, j
  real(8) :: total

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  do c = 1, count
    size(1, c) = 8 + 3 * c
    size(2, c) = most - 2 * c
    begin(c) = mod(c, 2) + 1
    do j = 0, most + 1
      do i = 0, most + 1
        u(i, j, c) = mod(7 * i + 3 * j + 5 * c + rank, 19)
        r(i, j, c) = 0
      end do
    end do
  end do
  do step = 1, 3
    call faces()
    do c = 1, count
      do j = 1, size(2, c)
        do i = 1, size(1, c)
          u(i, j, c) = 0.5d0 * u(i, j, c) + 0.25d0 * r(i, j, c)
        end do
      end do
    end do
  end do
  total = 0
  do c = 1, count
    total = total + sum(u(1:size(1, c), 1:size(2, c), c))
  end do
  write (*, '(i4,z17.16)') rank, total
  call MPI_Finalize(ierr)
end program many_cells
