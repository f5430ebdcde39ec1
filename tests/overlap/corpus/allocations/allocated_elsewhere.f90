! Allocatables that get other bounds under other names.
module arrays
  implicit none
  real(8), allocatable :: v(:), x(:)
contains
  subroutine make()
    allocate (v(1:42), x(1:42))
    v = 0
    x = 0
  end subroutine make

  subroutine renew(a)
    real(8), allocatable, intent(inout) :: a(:)
    deallocate (a)
    allocate (a(0:41))
  end subroutine renew
end module arrays

module others
  use arrays, only: vv => v, anew => renew
  implicit none
contains
  subroutine reshape_both(y)
    real(8), allocatable, intent(in) :: y(:)
    deallocate (vv)
    vv = y
  end subroutine reshape_both

  subroutine work(a, b)
    real(8), intent(in) :: a(42)
    real(8), intent(inout) :: b(40)
    integer :: i
    do i = 1, 40
      b(i) = b(i) + 0.5d0 * a(i)
    end do
  end subroutine work
end module others

program allocated_elsewhere
  use mpi
  use arrays
  use others
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr, i, step
  real(8), allocatable :: y(:)
  real(8) :: r(n) = 0, s(n) = 0

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  allocate (y(0:n + 1))
  y = [(i + 100 * rank, i=0, n + 1)]
  call make()
  call reshape_both(y)
  call anew(x)
  x(:) = y
  do step = 1, 3
    call MPI_Sendrecv(v(1), 1, MPI_DOUBLE_PRECISION, left, 1, v(0), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call work(v, r)
    v(1:n) = v(1:n) + 0.25d0 * r
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(x(1), 1, MPI_DOUBLE_PRECISION, left, 1, x(0), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call work(x, s)
    x(1:n) = x(1:n) + 0.25d0 * s
  end do
  write (*, '(i4,4z17.16)') rank, sum(v), sum(x), sum(r), sum(s)
  call MPI_Finalize(ierr)
end program allocated_elsewhere
