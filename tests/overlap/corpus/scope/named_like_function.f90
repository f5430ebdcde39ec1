! Variables with the names of functions of the module, and of an external one.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
contains
  real(8) function last()
    last = 1
  end function last

  subroutine get(x)
    real(8), intent(out) :: x

    x = u(n + 1)
  end subroutine get

  subroutine work()
    real(8) :: last, other
    integer :: i

    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call get(last)
    do i = 1, n
      w(i) = w(i) + last
    end do
    do i = 1, n
      r(i) = r(i) + 0.5d0 * u(i + 1)
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call get(other)
    do i = 1, n
      w(i) = w(i) + other
    end do
    do i = 1, n
      r(i) = r(i) + 0.5d0 * u(i + 1)
    end do
  end subroutine work
end module grid

program named_like_function
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
    call work()
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,(3z17.16))') rank, u, r, w
  call MPI_Finalize(ierr)
end program named_like_function

real(8) function other()
  other = 1
end function other
