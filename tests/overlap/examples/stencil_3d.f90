! Seven points in a box cut along its last dimension, with packed faces in a procedure of their own.
module box
  use mpi_f08
  implicit none
  integer, parameter :: nx = 16, ny = 14, nz = 12
  real(8) :: u(0:nx + 1, 0:ny + 1, 0:nz + 1), r(0:nx + 1, 0:ny + 1, 0:nz + 1)
  integer :: rank, size, below, above, face
contains
  subroutine exchange(x)
    real(8), intent(inout) :: x(0:nx + 1, 0:ny + 1, 0:nz + 1)
    real(8), save :: up(nx, ny), down(nx, ny), from_below(nx, ny), from_above(nx, ny)
    type(MPI_Request) :: requests(2)
    integer :: i, j

    call MPI_Irecv(from_below, face, MPI_DOUBLE_PRECISION, below, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(from_above, face, MPI_DOUBLE_PRECISION, above, 2, MPI_COMM_WORLD, requests(2))
    do j = 1, ny
      do i = 1, nx
        up(i, j) = x(i, j, nz)
        down(i, j) = x(i, j, 1)
      end do
    end do
    ! overlap: nonblocking
    call MPI_Send(up, face, MPI_DOUBLE_PRECISION, above, 1, MPI_COMM_WORLD)
    call MPI_Send(down, face, MPI_DOUBLE_PRECISION, below, 2, MPI_COMM_WORLD)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    if (below /= MPI_PROC_NULL) then
      do j = 1, ny
        do i = 1, nx
          x(i, j, 0) = from_below(i, j)
        end do
      end do
    end if
    if (above /= MPI_PROC_NULL) then
      do j = 1, ny
        do i = 1, nx
          x(i, j, nz + 1) = from_above(i, j)
        end do
      end do
    end if
  end subroutine exchange

  subroutine residual()
    integer :: i, j, k
    do k = 1, nz
      do j = 1, ny
        do i = 1, nx
          r(i, j, k) = u(i - 1, j, k) + u(i + 1, j, k) + u(i, j - 1, k) + u(i, j + 1, k) &
                     + u(i, j, k - 1) + u(i, j, k + 1) - 6d0 * u(i, j, k)
        end do
      end do
    end do
  end subroutine residual
end module box

program seven_points
  use mpi_f08
  use box
  implicit none
  integer :: step, i, j, k

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  face = nx * ny
  below = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  above = merge(rank + 1, MPI_PROC_NULL, rank < size - 1)
  do k = 0, nz + 1
    do j = 0, ny + 1
      do i = 0, nx + 1
        u(i, j, k) = mod(i + 3 * j + 7 * k + rank, 23)
      end do
    end do
  end do
  do step = 1, 3
    call exchange(u)
    call residual()
    do k = 1, nz
      do j = 1, ny
        do i = 1, nx
          u(i, j, k) = u(i, j, k) + 0.125d0 * r(i, j, k)
        end do
      end do
    end do
  end do
  print '(i4,2z17.16)', rank, sum(u), sum(r(1:nx, 1:ny, 1:nz))
  call MPI_Finalize()
end program seven_points
