! What is passed by value is read where it is passed.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  real(8) :: y = 0
  type box
    real(8) :: k
  end type
  type(box) :: b
contains
  subroutine add(x, a)
    real(8), value :: x
    real(8) :: a(n)
    integer :: i

    do i = 1, n
      a(i) = a(i) + x
    end do
  end subroutine add

  subroutine add_boxed(x, a)
    type(box), value :: x
    real(8) :: a(n)
    integer :: i

    do i = 1, n
      a(i) = a(i) + x%k
    end do
  end subroutine add_boxed

  real(8) function more(x)
    real(8), value :: x

    more = x + 1
  end function more
end module grid

program value_read
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
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call add(u(n + 1), w(1:n))
    do i = 1, n
      r(i) = r(i) + u(i + 1)
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    b%k = u(n + 1)
    call add_boxed(b, w(1:n))
    do i = 1, n
      r(i) = r(i) + u(i + 1)
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    y = u(n + 1)
    do i = 1, n
      w(i) = w(i) + more(y)
    end do
    do i = 1, n
      r(i) = r(i) + u(i + 1)
    end do
    u(1) = u(1) + r(1)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, y, 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      w(i) = w(i) + 2 * more(y)
    end do
    r = r + y
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,(3z17.16))') rank, u, r, w
  call MPI_Finalize(ierr)
end program value_read
