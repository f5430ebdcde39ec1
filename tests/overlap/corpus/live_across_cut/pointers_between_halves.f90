! Pointers that the first half of a procedure sets, and the second one follows.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1, big(400) = 1
  real(8), target :: line(0:n + 1) = 1
  real(8), pointer :: p(:)
contains
  subroutine local_pointer(a)
    real(8) :: a(0:n + 1)
    real(8), pointer :: q(:)

    q => line(3:5)
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    w(1) = w(1) + q(2) + a(n + 1)
  end subroutine local_pointer

  subroutine local_target(a)
    real(8) :: a(0:n + 1)
    real(8), target :: own(10)

    p => own
    own = 2 * a(1:10)
    a(1) = a(1) + own(2)
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    w(1) = w(1) + p(3) + a(n + 1)
  end subroutine local_target

  subroutine handed_on(a)
    real(8) :: a(0:n + 1)
    real(8), target :: own(10)

    own = 2 * a(1:10)
    call keep(own)
    a(1) = a(1) + own(2)
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    w(1) = w(1) + p(3) + a(n + 1)
  end subroutine handed_on

  subroutine keep(x)
    real(8), target :: x(10)

    p => x
  end subroutine keep
end module grid

program pointers_between_halves
  use grid
  implicit none
  integer :: i, step

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = [(i + 100 * rank, i = 0, n + 1)]
  do step = 1, 3
    call local_pointer(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    call local_target(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    call handed_on(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,4z17.16)') rank, sum(u), sum(r), sum(w), sum(big)
  call MPI_Finalize(ierr)
end program pointers_between_halves
