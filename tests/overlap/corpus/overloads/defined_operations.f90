! Assignments and operators that are procedures, for components, for numbers, and for characters.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
end module grid

module types
  use grid
  type inner
    real(8) :: v = 0
  end type inner
  type outer
    type(inner) :: a
  end type outer
  interface assignment(=)
    module procedure from_inner, to_real
  end interface
  interface operator(+)
    module procedure plus
  end interface
  interface operator(-)
    module procedure minus
  end interface
contains
  subroutine from_inner(x, y)
    type(inner), intent(out) :: x
    type(inner), intent(in) :: y
    x%v = y%v + u(n + 1)
  end subroutine from_inner

  subroutine to_real(x, y)
    real(8), intent(out) :: x
    type(inner), intent(in) :: y
    x = y%v + u(n + 1)
  end subroutine to_real

  real(8) function plus(x, y)
    type(inner), intent(in) :: x, y
    plus = x%v + y%v + u(n + 1)
  end function plus

  real(8) function minus(x, y)
    character(*), intent(in) :: x, y
    minus = ichar(x) - ichar(y) + u(n + 1)
  end function minus
end module types

program defined_operations
  use types
  implicit none
  integer :: i, step
  type(outer) :: o, p
  type(inner) :: a
  character :: c = 'a'

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = [(i + 100 * rank, i=0, n + 1)]
  do step = 1, 3
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      o%a = p%a
      r(i) = r(i) + o%a%v
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      w(i) = a
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      r(i) = r(i) + (o%a + p%a)
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      r(i) = r(i) + (c - 'b')
    end do
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,3z17.16)') rank, sum(u), sum(r), sum(w)
  call MPI_Finalize(ierr)
end program defined_operations
