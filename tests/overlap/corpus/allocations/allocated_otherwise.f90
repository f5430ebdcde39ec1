! Allocatables with a single ALLOCATE that have other bounds than those it gives.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  real(8), allocatable :: v(:, :), x(:, :)
  real(8) :: y(n)
contains
  subroutine work(a)
    real(8), allocatable, intent(inout) :: a(:, :)
    integer :: i

    if (.not. allocated(a)) then
      allocate (a(n, 8))
      a = 1
    end if
    y = u(1:n)
    call MPI_Sendrecv(y, n, MPI_DOUBLE_PRECISION, left, 1, a(1, 1), n, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      w(i) = w(i) + a(3, 2)
    end do
    r = r + a(1, 1)
  end subroutine work
end module grid

program allocated_otherwise
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
  do step = 1, 3
    if (step == 1) call make()
    y = u(1:n)
    call MPI_Sendrecv(y, 20, MPI_DOUBLE_PRECISION, left, 1, v(1, 1), 20, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      w(i) = w(i) + v(3, 2)
    end do
    r = r + v(1, 1)
    call work(x)
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,(3z17.16))') rank, u, r, w
  call MPI_Finalize(ierr)
contains
  subroutine make()
    real(8) :: few(8, 8)

    few = 2
    allocate (v(n, 8))
    v = -few
    x = few
  end subroutine make
end program allocated_otherwise
