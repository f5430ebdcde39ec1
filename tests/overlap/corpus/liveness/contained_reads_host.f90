! The host's variables, which nothing but procedures that it contains reads after the loops that set them.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
end module grid

program contained_reads_host
  use grid
  implicit none
  integer :: i, step, j
  real(8) :: t, line(n)

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
    do i = n, 1, -1
      t = 0.5d0 * u(i + 1)
      r(i) = r(i) + t
    end do
    if (large()) r(2) = 0
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  do step = 1, 3
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do j = 1, n
      do i = 1, n
        line(i) = u(j + 1) + i
      end do
      w(j) = line(1) + line(n)
    end do
    call show()
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,3z17.16)') rank, sum(u), sum(r), sum(w)
  call MPI_Finalize(ierr)
contains
  logical function large()
    large = t > 20
    print *, t
  end function large

  subroutine show()
    print *, line(1)
  end subroutine show
end program contained_reads_host
