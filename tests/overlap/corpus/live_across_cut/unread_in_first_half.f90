! Statements that are not understood, which set what the second half of their procedure reads.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1, big(400) = 1
  integer :: k = 0
contains
  subroutine in_block(a)
    real(8) :: a(0:n + 1)
    real(8) :: t

    block
      real(8) :: s
      s = a(1)
      t = 2 * s
    end block
    a(1) = a(1) + t
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    w(1) = w(1) + t + a(n + 1)
  end subroutine in_block

  subroutine renamed(a)
    real(8) :: a(0:n + 1)
    real(8) :: t

    associate (s => t)
      s = 2 * a(1)
    end associate
    a(1) = a(1) + t
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    w(1) = w(1) + t + a(n + 1)
  end subroutine renamed

  subroutine from_namelist(a)
    real(8) :: a(0:n + 1)
    real(8) :: t
    character(20) :: line
    namelist /values/ t

    line = '&values t=3.5 /'
    read (line, nml=values)
    a(1) = a(1) + t
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    w(1) = w(1) + t + a(n + 1)
  end subroutine from_namelist

  subroutine ended(a)
    real(8) :: a(0:n + 1)

    block
      real(8) :: s
      s = 1
      k = k + 1
      if (mod(k, 2) == 0) return
      a(1) = a(1) + s
    end block
    call MPI_Sendrecv(a(1), 1, MPI_DOUBLE_PRECISION, left, 1, a(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    w(1) = w(1) + a(n + 1)
  end subroutine ended
end module grid

program unread_in_first_half
  use grid
  implicit none
  integer :: i, step

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = [(i + 100 * rank, i = 0, n + 1)]
  do step = 1, 3
    call in_block(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    call renamed(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    call from_namelist(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    call ended(u)
    do i = 1, n
      big(i) = big(i) + i
    end do
    r = r + 0.5d0 * u(2:n + 1)
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,4z17.16)') rank, sum(u), sum(r), sum(w), sum(big)
  call MPI_Finalize(ierr)
end program unread_in_first_half
