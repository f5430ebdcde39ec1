! The exchange is a procedure's; what it could hide behind is its caller's.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 2000
  real(8) :: u(0:n + 1), w(n), q(n)
  integer :: rank, size, left, right, ierr
contains
  subroutine exchange()
    integer :: request
    ! overlap: start-earlier
    call MPI_Irecv(u(0), 1, MPI_DOUBLE_PRECISION, left, 9, MPI_COMM_WORLD, request, ierr)
    call MPI_Send(u(n), 1, MPI_DOUBLE_PRECISION, right, 9, MPI_COMM_WORLD, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  end subroutine exchange

  subroutine sources(step)
    integer, intent(in) :: step
    integer :: i
    do i = 2, n
      q(i) = 0.5d0 * q(i - 1) + 0.001d0 * i * step
    end do
  end subroutine sources

  subroutine advance()
    integer :: i
    do i = 1, n
      w(i) = 0.5d0 * u(i) + 0.5d0 * u(i - 1) + q(i)
    end do
    do i = 1, n
      u(i) = w(i)
    end do
  end subroutine advance
end module grid

program callee
  use mpi
  use grid
  implicit none
  integer :: step, i

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank < size - 1)
  do i = 0, n + 1
    u(i) = mod(i * 7 + rank, 53)
  end do
  q = 0d0
  do step = 1, 4
    call sources(step)
    call exchange()
    call advance()
  end do
  print '(i4,2z17.16)', rank, sum(u), sum(w)
  call MPI_Finalize(ierr)
end program callee
