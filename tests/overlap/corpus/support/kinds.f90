! Kinds that the program names: what is added at the end of the file knows none of its names.
module precisions
  use, intrinsic :: iso_fortran_env, only: rk => real64, int64
  implicit none
  integer, parameter :: dp = kind(1.0d0), sp = selected_real_kind(6)
  type :: point
    sequence
    real(dp) :: x, y
  end type
end module

program kinds
  use mpi
  use precisions, wp => dp
  implicit none
  real(wp) :: a(100), b(100), c(100)
  real(kind=rk) :: e(100), f(100)
  real(sp) :: g(100), h(100)
  integer(int64) :: l(100), m(100)
  complex(wp) :: z(50), y(50)
  character(len=*), parameter :: blank = '     '
  character(len=len(blank)) :: s(20), t(20)
  type(point) :: p(40), q(40)
  integer :: me, np, next, prev, it, i, ie
  call mpi_init(ie)
  call mpi_comm_rank(mpi_comm_world, me, ie)
  call mpi_comm_size(mpi_comm_world, np, ie)
  next = mod(me+1, np)
  prev = mod(me+np-1, np)
  a = me; b = 0; c = 1; e = me; f = 0; g = real(me); h = 0; l = me; m = 0; z = (1d0,2d0)*me; y = 0; t = ''
  p%x = me; p%y = 1; q = p
  do i = 1, 20
    write(s(i), '(i5)') i*me
  end do
  do it = 1, 3
    call mpi_sendrecv(a, 100, mpi_double_precision, next, 1, b, 100, mpi_double_precision, prev, 1, mpi_comm_world, &
                      mpi_status_ignore, ie)
    do i = 1, 100; c(i) = 0.5_wp*c(i) + i; end do
    a = 0.5_wp*b + c
    call mpi_sendrecv(e, 100, mpi_double_precision, next, 2, f, 100, mpi_double_precision, prev, 2, mpi_comm_world, &
                      mpi_status_ignore, ie)
    do i = 1, 100; c(i) = 0.5_wp*c(i) + i; end do
    e = 0.5_rk*f + c
    call mpi_sendrecv(g, 100, mpi_real, next, 3, h, 100, mpi_real, prev, 3, mpi_comm_world, mpi_status_ignore, ie)
    do i = 1, 100; c(i) = 0.5_wp*c(i) + i; end do
    g = h + 1
    call mpi_sendrecv(l, 100, mpi_integer8, next, 4, m, 100, mpi_integer8, prev, 4, mpi_comm_world, mpi_status_ignore, ie)
    do i = 1, 100; c(i) = 0.5_wp*c(i) + i; end do
    l = m + it
    call mpi_sendrecv(z, 50, mpi_double_complex, next, 5, y, 50, mpi_double_complex, prev, 5, mpi_comm_world, &
                      mpi_status_ignore, ie)
    do i = 1, 100; c(i) = 0.5_wp*c(i) + i; end do
    z = y*(0.5_wp,0.1_wp)
    call mpi_sendrecv(s, 100, mpi_character, next, 6, t, 100, mpi_character, prev, 6, mpi_comm_world, mpi_status_ignore, ie)
    do i = 1, 100; c(i) = 0.5_wp*c(i) + i; end do
    s(1:19) = t(2:20)
    call mpi_sendrecv(p, 80, mpi_double_precision, next, 7, q, 80, mpi_double_precision, prev, 7, mpi_comm_world, &
                      mpi_status_ignore, ie)
    do i = 1, 100; c(i) = 0.5_wp*c(i) + i; end do
    p%x = q%y
    p%y = q%x*0.5_wp
    call mpi_bcast(e, 100, mpi_double_precision, 0, mpi_comm_world, ie)
    do i = 1, 100; c(i) = 0.5_wp*c(i) + i; end do
  end do
  print '(4(z16.16,1x))', sum(a), sum(c), real(sum(z), 8), sum(e)
  print *, sum(l), s(1:3), sum(g), sum(p%x)
  call mpi_finalize(ie)
end program
