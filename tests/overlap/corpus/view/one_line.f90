! Ünïcode in comments; several units on a line; very long lines; `;`
program p; use mpi; implicit none; integer, parameter :: n=100; real(8) :: a(n),b(n),c(n); integer :: i,it,ie,me,np,nx,pv
call mpi_init(ie); call mpi_comm_rank(mpi_comm_world,me,ie); call mpi_comm_size(mpi_comm_world,np,ie); nx=mod(me+1,np); pv=mod(me+np-1,np)
do i=1,n; a(i)=i+me; b(i)=0; c(i)=i; end do
do it=1,4; if (mod(me,2)==0) call mpi_send(a,n,mpi_double_precision,nx,1,mpi_comm_world,ie); call mpi_recv(b,n,mpi_double_precision,pv,1,mpi_comm_world,mpi_status_ignore,ie); if (mod(me,2)==1) call mpi_send(a,n,mpi_double_precision,nx,1,mpi_comm_world,ie); do i=1,n; c(i)=0.5d0*c(i)+i; end do; a=0.5d0*b+c; call q(a,c,n); end do
if (me >= 0) call mpi_bcast(a,n,mpi_double_precision,0,mpi_comm_world,ie); do i=1,n; c(i)=0.5d0*c(i)+i; end do
if (it > 3) then; call mpi_sendrecv(a,n,mpi_double_precision,nx,1,b,n,mpi_double_precision,pv,1,mpi_comm_world,mpi_status_ignore,ie); do i=1,n; c(i)=0.5d0*c(i)+i; end do; a=a+b; else; a=0; end if
print '(a,3(z16.16,1x))', 'Größe ', sum(a), sum(b), sum(c); call mpi_finalize(ie); end program p; subroutine q(x,y,n); use mpi; integer n,ie,me,np; real(8) x(n),y(n),z(n)
call mpi_comm_rank(mpi_comm_world,me,ie); call mpi_comm_size(mpi_comm_world,np,ie)
                                                                                      call mpi_sendrecv(x,n,mpi_double_precision,mod(me+1,np),7,z,n,mpi_double_precision,mod(me+np-1,np),7,mpi_comm_world,mpi_status_ignore,ie)
do i=1,n; y(i)=y(i)*0.5d0+i; end do; x=x+z; end subroutine q
