! Ranks take turns with a file; messages say whose turn it is.
program sharedfile
  use mpi
  implicit none
  integer, parameter :: n = 100
  real(8) :: a(n), b(n), c(n)
  integer :: me, np, it, i, ie, u
  character(len=80) :: line
  call mpi_init(ie); call mpi_comm_rank(mpi_comm_world, me, ie); call mpi_comm_size(mpi_comm_world, np, ie)
  a = [(i*1d0+me, i=1,n)]; c = 0
  if (me == 0) then
     open(newunit=u, file='sharedfile.dat', status='replace'); close(u)
  end if
  call mpi_barrier(mpi_comm_world, ie)
  do it = 1, 3
     do i = 1, n; a(i) = 0.5d0*a(i) + i; end do
     if (me == 0) call slow(c)
     if (me == 0) then
        open(newunit=u, file='sharedfile.dat', position='append'); write(u, '(a,z16.16)') 'first ', c(4); close(u)
     end if
     call mpi_scatter(a, n / np, mpi_double_precision, b, n / np, mpi_double_precision, 0, mpi_comm_world, ie)
     do i = 1, n; c(i) = 0.5d0*c(i) + i; end do
     if (me == np-1) then
        open(newunit=u, file='sharedfile.dat', position='append'); write(u, '(a,z16.16)') 'last  ', b(4); close(u)
     end if
     call mpi_barrier(mpi_comm_world, ie)
  end do
  if (me == 0) then
     open(newunit=u, file='sharedfile.dat')
     do
        read(u, '(a)', iostat=ie) line
        if (ie /= 0) exit
        print '(a)', trim(line)
     end do
     close(u, status='delete')
  end if
  call mpi_finalize(ie)
end program
subroutine slow(c)
  real(8) :: c(100)
  integer :: i
  do i = 1, 2000000
     c(mod(i,100)+1) = c(mod(i,100)+1)*0.999d0 + 1
  end do
end subroutine
