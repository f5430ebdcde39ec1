! A ring of particles' blocks: the visiting block moves on while forces of the resident one are worked out.
module particles
  implicit none
  integer, parameter :: n = 600
  real(8) :: x(n), visiting(n), arriving(n), force(n)
contains
  subroutine own_forces()
    integer :: i
    do i = 2, n
      force(i) = force(i) + 0.5d0 * (x(i) - x(i - 1))
    end do
  end subroutine own_forces

  subroutine visitors_forces()
    integer :: i
    do i = 1, n
      force(i) = force(i) + 0.125d0 * (visiting(i) - x(i))
    end do
  end subroutine visitors_forces
end module particles

program ring
  use mpi
  use particles
  implicit none
  integer :: rank, size, next, previous, turn, i, ierr

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  next = mod(rank + 1, size)
  previous = mod(rank + size - 1, size)
  do i = 1, n
    x(i) = mod(i * 37, 101) + 0.01d0 * rank
    visiting(i) = x(i)
    force(i) = 0d0
  end do
  do turn = 1, size
    ! overlap: nonblocking
    call MPI_Sendrecv(visiting, n, MPI_DOUBLE_PRECISION, next, 4, arriving, n, MPI_DOUBLE_PRECISION, previous, 4, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call own_forces()
    call visitors_forces()
    visiting = arriving
  end do
  print '(i4,2z17.16)', rank, sum(force), sum(visiting)
  call MPI_Finalize(ierr)
end program ring
