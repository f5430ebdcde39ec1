! What a procedure has from its host, or a module: a NAMELIST, a statement function with an intrinsic function's name.
module settings
  implicit none
  real(8) :: x = 1
  namelist /group/ x
contains
  subroutine get_group(text)
    character(*), intent(in) :: text

    read (text, group)
  end subroutine get_group
end module settings

module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
end module grid

subroutine with_group()
  use grid
  use settings
  implicit none
  integer :: i

  call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierr)
  x = 3
  call get_group(' &group x = 5 /')
  do i = 1, n
    w(i) = w(i) + x
  end do
  r = r + 0.5d0 * u(2:n + 1)
end subroutine with_group

subroutine with_function()
  use grid
  implicit none
  real(8) :: scale, z
  integer :: i
  scale(z) = z * u(n + 1)

  call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierr)
  call inner()
  do i = 1, n
    w(i) = w(i) + 2
  end do
  r = r + 0.5d0 * u(2:n + 1)
contains
  subroutine inner()
    w(3) = w(3) + scale(1d0)
  end subroutine inner
end subroutine with_function

program from_hosts
  use grid
  implicit none
  integer :: i, step

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = [(i + 100 * rank, i=0, n + 1)]
  do step = 1, 3
    call with_group()
    call with_function()
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,(3z17.16))') rank, u, r, w
  call MPI_Finalize(ierr)
end program from_hosts
