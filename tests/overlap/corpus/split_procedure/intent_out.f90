! INTENT(OUT) frees what is allocated and sets what has initial values, in each half of a procedure anew.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  type box
    real(8) :: x(n) = 7
  end type
  type(box) :: b
  real(8), allocatable :: s(:)
contains
  subroutine freed(q)
    real(8), allocatable, intent(out) :: q(:)
    integer :: i

    allocate (q(n))
    do i = 1, n
      q(i) = 0.5d0 * u(i)
    end do
    do i = 1, n
      w(i) = w(i) + u(i + 1)
    end do
  end subroutine freed

  subroutine initial(q)
    type(box), intent(out) :: q
    integer :: i

    do i = 1, n
      q%x(i) = 0.5d0 * u(i)
    end do
    do i = 1, n
      w(i) = w(i) + u(i + 1)
    end do
  end subroutine initial

  subroutine plain(q)
    real(8), intent(out) :: q
    integer :: i

    q = 0
    do i = 1, n
      q = q + 0.5d0 * u(i)
    end do
    do i = 1, n
      w(i) = w(i) + u(i + 1)
    end do
  end subroutine plain
end module grid

program intent_out
  use grid
  implicit none
  integer :: i, step
  real(8) :: q

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do i = 0, n + 1
    u(i) = i + 100 * rank
  end do
  do step = 1, 3
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call freed(s)
    r = s
    u(1:n) = u(1:n) + 0.25d0 * r
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call initial(b)
    r = b%x
    u(1:n) = u(1:n) + 0.25d0 * r
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call plain(q)
    r = q
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,6z17.16)') rank, sum(u), sum(r), sum(w), sum(s), sum(b%x), q
  call MPI_Finalize(ierr)
end program intent_out
