! Shapes made of functions and components, which change in the first half of the procedure.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1, big(400) = 1
  integer :: k = 4
  type sizes
    integer :: k = 4
  end type sizes
  type(sizes) :: s
contains
  pure integer function width()
    width = k
  end function width

  subroutine by_function(a)
    real(8) :: a(0:n + 1)
    real(8) :: line(width())

    k = 9 - k
    a(1) = a(1) + k
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    line = a(n + 1)
    w(1) = w(1) + sum(line)
  end subroutine by_function

  subroutine by_component(a)
    real(8) :: a(0:n + 1)
    real(8) :: line(s%k)

    s%k = 9 - s%k
    a(1) = a(1) + s%k
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    line = a(n + 1)
    w(1) = w(1) + sum(line)
  end subroutine by_component

  subroutine by_length(a)
    real(8) :: a(0:n + 1)
    character(len=s%k) :: line

    s%k = 9 - s%k
    a(1) = a(1) + s%k
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    line = 'abcdefgh'
    w(1) = w(1) + len(line) + len_trim(line) + a(n + 1)
  end subroutine by_length
end module grid

program shaped_by_more
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
    call by_function(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    call by_component(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    call by_length(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,4z17.16)') rank, sum(u), sum(r), sum(w), sum(big)
  call MPI_Finalize(ierr)
end program shaped_by_more
