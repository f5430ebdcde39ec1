! What is passed by value changes after the call of a procedure that is divided.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  real(8) :: y = 0
contains
  subroutine exchange(a, x)
    real(8) :: a(0:n + 1)
    real(8), value :: x

    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    a(n + 1) = a(n + 1) + x
  end subroutine exchange
end module grid

program value_changed
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
    call exchange(u, y)
    do i = 1, n
      y = y + i
    end do
    r = r + u(2:n + 1)
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,(3z17.16))') rank, u, r, w
  call MPI_Finalize(ierr)
end program value_changed
