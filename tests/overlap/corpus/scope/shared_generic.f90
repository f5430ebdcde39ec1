! Generic names that two modules share, and one that is an intrinsic's, too.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
end module grid

module whole
  use grid
  type box
    integer :: k
  end type box
  interface part
    module procedure part_of_whole
  end interface
  interface sum
    module procedure sum_of_box
  end interface
contains
  real(8) function part_of_whole(k)
    integer, intent(in) :: k
    part_of_whole = k
  end function part_of_whole

  real(8) function sum_of_box(b)
    type(box), intent(in) :: b
    sum_of_box = b%k
  end function sum_of_box
end module whole

module reals
  use grid
  interface part
    module procedure part_of_real
  end interface
contains
  real(8) function part_of_real(x)
    real(8), intent(in) :: x
    part_of_real = x * u(n + 1)
  end function part_of_real
end module reals

program shared_generic
  use whole
  use reals
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
    do i = 1, n
      w(i) = w(i) + part(1d0)
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      w(i) = w(i) + sum(u)
    end do
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,3z17.16)') rank, sum(u), sum(r), sum(w)
  call MPI_Finalize(ierr)
end program shared_generic
