! A variable whose end calls a procedure.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
end module grid

module ending
  use grid
  type ends
    real(8) :: v = 1
  contains
    final :: finish
  end type ends
  type holds
    type(ends) :: inside
  end type holds
contains
  subroutine finish(x)
    type(ends), intent(inout) :: x
    w(1) = w(1) + u(n + 1)
  end subroutine finish

  subroutine work(k)
    integer, intent(in) :: k
    type(holds) :: x
    integer :: i
    x%inside%v = k
    do i = 2, n
      w(i) = w(i) + x%inside%v
    end do
  end subroutine work
end module ending

program final_procedure
  use ending
  implicit none
  integer :: i, step

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = [(i + 100 * rank, i=0, n + 1)]
  do step = 1, 3
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call work(step)
    do i = 1, n
      r(i) = r(i) + 0.5d0 * u(i + 1)
    end do
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,3z17.16)') rank, sum(u), sum(r), sum(w)
  call MPI_Finalize(ierr)
end program final_procedure
