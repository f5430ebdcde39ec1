! Arrays that begin where an argument said on entry, and an argument that changes later.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  real(8) :: h(2 * n) = 1
contains
  subroutine work(v)
    real(8), intent(in) :: v(:)
    integer :: i

    do i = 1, n
      r(i) = r(i) + 0.5d0 * v(i + 2)
    end do
  end subroutine work

  subroutine shifted(v, low)
    integer :: low, turn
    real(8) :: v(low:n + 1)

    do turn = 1, 3
      low = -1
      call MPI_Sendrecv(v(1), 1, MPI_DOUBLE_PRECISION, left, 1, v(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                        MPI_STATUS_IGNORE, ierr)
      call work(v)
      v(1:n) = v(1:n) + 0.25d0 * r
    end do
  end subroutine shifted

  subroutine tail(v, h, low)
    integer :: low, i
    real(8) :: v(n), h(low:*)

    low = 1
    call MPI_Sendrecv(v, 4, MPI_DOUBLE_PRECISION, left, 1, h, 4, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 5, n
      r(i) = r(i) + 0.5d0 * h(i)
    end do
  end subroutine tail
end module grid

program bounds_on_entry
  use grid
  implicit none
  integer :: i, step, low

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do i = 0, n + 1
    u(i) = i + 100 * rank
  end do
  do step = 1, 3
    low = 0
    call shifted(u, low)
    low = 4
    call tail(u(1:n), h, low)
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,4z17.16)') rank, sum(u), sum(r), sum(w), sum(h)
  call MPI_Finalize(ierr)
end program bounds_on_entry
