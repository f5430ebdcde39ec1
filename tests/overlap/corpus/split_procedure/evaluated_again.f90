! Arguments that are evaluated at each call of a half of a procedure.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  real(8), target :: t(9) = [1, 2, 3, 4, 5, 6, 7, 8, 9]
  real(8), pointer :: p
contains
  subroutine changed(a, x)
    real(8) :: a(0:n + 1)
    real(8), value :: x

    a(1) = a(1) + 2
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    a(n + 1) = a(n + 1) + x
  end subroutine changed

  subroutine pointed(a, x)
    real(8) :: a(0:n + 1), x

    p => t(3)
    a(1) = a(1) + p
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    x = x + 1
    a(n + 1) = a(n + 1) + x
  end subroutine pointed
end module grid

program evaluated_again
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
    call changed(u, u(1))
    do i = 1, n
      r(i) = r(i) + i
    end do
    r = r + u(2:n + 1)
    p => t(2)
    call pointed(u, p)
    w(1:9) = w(1:9) + t
    do i = 1, n
      r(i) = r(i) + i
    end do
    r = r + u(2:n + 1)
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,(3z17.16))') rank, u, r, w
  call MPI_Finalize(ierr)
end program evaluated_again
