! Parts of local variables, and other names of them, which the first half of a procedure sets.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1, big(400) = 1
  type pair
    real(8) :: x = 0, v(3) = 0
  end type pair
contains
  subroutine component(a)
    real(8) :: a(0:n + 1)
    type(pair) :: t

    t%x = 2 * a(1)
    a(1) = a(1) + t%x
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    w(1) = w(1) + t%x + a(n + 1)
  end subroutine component

  subroutine of_an_array(a)
    real(8) :: a(0:n + 1)
    type(pair) :: t(4)

    t(2)%v(3) = 2 * a(1)
    a(1) = a(1) + t(2)%v(3)
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    w(1) = w(1) + t(2)%v(3) + a(n + 1)
  end subroutine of_an_array

  subroutine complex_part(a)
    real(8) :: a(0:n + 1)
    complex(8) :: z

    z%re = 2 * a(1)
    a(1) = a(1) + z%re
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    w(1) = w(1) + z%re + a(n + 1)
  end subroutine complex_part

  subroutine equivalent(a)
    real(8) :: a(0:n + 1)
    real(8) :: x(4), y(4)
    equivalence (x, y)

    x = 2 * a(1)
    a(1) = a(1) + x(1)
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    w(1) = w(1) + y(2) + a(n + 1)
  end subroutine equivalent
end module grid

program parts_of_locals
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
    call component(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    call of_an_array(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    call complex_part(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    call equivalent(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,4z17.16)') rank, sum(u), sum(r), sum(w), sum(big)
  call MPI_Finalize(ierr)
end program parts_of_locals
