! A local allocatable that would be gone at the end of the procedure's first half.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
contains
  subroutine work()
    real(8), allocatable :: line(:)
    integer :: i

    allocate (line(n))
    do i = 1, n
      w(i) = w(i) + 0.5d0 * u(i)
    end do
    do i = 1, n
      line(i) = u(i + 1)
    end do
    do i = 1, n
      r(i) = r(i) + line(n + 1 - i)
    end do
    deallocate (line)
  end subroutine work
end module grid

program allocated_in_first_half
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
    call work()
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,3z17.16)') rank, sum(u), sum(r), sum(w)
  call MPI_Finalize(ierr)
end program allocated_in_first_half
