! INTENT(OUT) frees what is allocated, and sets what has initial values, without a statement.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  real(8), allocatable :: v(:)
  type box
    real(8) :: x = 7
  end type
  type(box) :: b
contains
  subroutine clear(a)
    real(8), allocatable, intent(out) :: a(:)
  end subroutine clear

  subroutine reset(a)
    type(box), intent(out) :: a
  end subroutine reset
end module grid

program freed_on_entry
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
    if (.not. allocated(v)) allocate (v(n))
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    if (u(n + 1) > 50) call clear(v)
    do i = 1, n
      if (allocated(v)) w(i) = w(i) + i
    end do
    do i = 1, n
      r(i) = r(i) + u(i + 1)
    end do
    b%x = step
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    if (u(n + 1) > 50) call reset(b)
    do i = 1, n
      w(i) = w(i) + b%x
    end do
    do i = 1, n
      r(i) = r(i) + u(i + 1)
    end do
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,(3z17.16))') rank, u, r, w
  call MPI_Finalize(ierr)
end program freed_on_entry
