"""The names of Fortran's intrinsic functions (Fortran 2018, 16.7, and common extensions)."""

INTRINSICS = frozenset(
    """
    abs achar acos acosh adjustl adjustr aimag aint all allocated alog alog10 amax0 amax1 amin0 amin1 amod anint
    any asin asinh associated atan atan2 atanh bessel_j0 bessel_j1 bessel_jn bit_size btest cabs ccos ceiling
    cexp char clog cmplx command_argument_count conjg cos cosh count cshift csin csqrt dabs dacos dasin datan
    datan2 dble dcmplx dconjg dcos dcosh ddim dexp dfloat dim dimag dint dlog dlog10 dmax1 dmin1 dmod dnint
    dot_product dprod dreal dsign dsin dsinh dsqrt dtan dtanh eoshift epsilon erf erfc erfc_scaled exp exponent
    extends_type_of findloc float floor fraction gamma huge hypot iabs iachar iall iand iany ibclr ibits ibset
    ichar idim idint idnint ieor ifix index int ior iparity ishft ishftc isign is_contiguous is_iostat_end
    is_iostat_eor kind lbound leadz len len_trim lge lgt lle llt log log10 log_gamma logical maskl maskr matmul
    max max0 max1 maxexponent maxloc maxval merge merge_bits min min0 min1 minexponent minloc minval mod modulo
    move_alloc nearest new_line nint norm2 not null num_images out_of_range pack parity popcnt poppar precision
    present product radix range real reduce repeat reshape rrspacing same_type_as scale scan selected_char_kind
    selected_int_kind selected_real_kind set_exponent shape shifta shiftl shiftr sign sin sinh size sngl spacing
    spread sqrt storage_size sum tan tanh this_image tiny trailz transfer transpose trim ubound unpack verify
    c_loc c_funloc c_associated c_sizeof
    """.split()
)

UNMISTAKABLE = frozenset(
    """
    abs acos adjustl adjustr aimag all allocated any asin associated atan atan2 ceiling cmplx command_argument_count
    conjg cos cosh cpu_time date_and_time dabs dble dcos dexp dlog dmax1 dmin1 dmod dot_product dsin dsqrt exp floor
    get_command_argument get_environment_variable iabs iand ieor int ior lbound len_trim log log10 logical matmul max
    max0 maxloc maxval min min0 minloc minval mod modulo move_alloc nint present random_number random_seed real
    reshape selected_int_kind selected_real_kind sin sinh sqrt sum system_clock tan tanh transpose trim ubound
    """.split()
)
"""Those whose names nobody gives a variable or a procedure; others may be either where a module or an include file is missing."""
